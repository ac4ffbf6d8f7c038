"use strict";

SwaggerUIBundle({ url: "/openapi.json", dom_id: "#api", tryItOutEnabled: true, validatorUrl: null, defaultModelsExpandDepth: 0 });
